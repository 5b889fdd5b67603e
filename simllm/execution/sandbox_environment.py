"""The environment variables of programs in the sandbox: the search path, the working folder and others."""

BOX = "/box"  # the working folder inside the sandbox
SEARCH_PATH = "/usr/bin:/bin:/usr/local/bin"
ENVIRONMENT = {
    "PATH": SEARCH_PATH,
    "HOME": BOX,
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",  # Python's sets print in the same order in every run
    "PYTHONINTMAXSTRDIGITS": "0",  # Python before 3.11 converts integers of more than 4,300 digits
    "OMP_NUM_THREADS": "1",  # libraries such as NumPy's start a thread for each processor, beyond the limit
}
