"""Safe reading and writing of files and folders; strict loading of JSON; tables and HTML pages.

- `where` is the place of a value for error messages, such as "FILE, line 3".
- The *real path* is the absolute path after all symbolic links are followed.
- A file is written *atomically* if, after a crash, it has either its old or its new content.
- The *marker* is the file `.simllm` in each folder that simllm writes. It says what the folder holds, and
  lists what simllm wrote; everything else in the folder is the user's.
- The *partial file* holds the results of an unfinished command, one *record* (a JSON object) on each line
  after the first, which has the command's settings.
- `-` as the name of an input is standard input. `output` is None for standard output.
"""
