"""Small git histories for tests, written with `git fast-import`."""

import subprocess


def git(folder, *arguments, input=None):
    """Run git in a folder, and return what it prints."""
    command = ["git", "-c", "user.name=A", "-c", "user.email=a@b", *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, input=input, capture_output=True, check=True)
    return done.stdout.decode(errors="replace").strip()


def commit_stream(files, number, parent=None, merged=None, branch="main"):
    """Return the lines of `git fast-import` for a commit.

    Args:
        files: The new content of each changed file by its path; None deletes the file.
        number: The mark of the commit, and its time.
        parent: The mark of the first parent; None for the commit before.
        merged: The mark of the second parent.
        branch: The name of the branch.
    """
    lines = [f"commit refs/heads/{branch}", f"mark :{number}", f"committer A <a@b> {number} +0000", "data 0"]
    lines += [f"from :{parent}"] * (parent is not None) + [f"merge :{merged}"] * (merged is not None)
    stream = "\n".join(lines).encode() + b"\n"
    for path, content in files.items():
        if content is None:
            stream += f"D {path}\n".encode()
        else:
            data = content.encode() if isinstance(content, str) else content
            stream += f"M 100644 inline {path}\ndata {len(data)}\n".encode() + data + b"\n"
    return stream


def import_history(folder, stream):
    """Make a bare repository from a stream of `git fast-import`; return its folder."""
    folder.mkdir(parents=True)
    git(folder, "init", "--bare", "--initial-branch=main", ".")
    git(folder, "fast-import", "--quiet", input=stream)
    return folder


def make_history(folder, *commits):
    """Make a bare repository with one commit for each dictionary of files (see `commit_stream`)."""
    return import_history(folder, b"".join(commit_stream(files, n) for n, files in enumerate(commits, 1)))
