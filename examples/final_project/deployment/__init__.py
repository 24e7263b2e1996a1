"""The whole project in a directory that stays: installed, supervised, looked after.

parts        which programs there are, and in which order they start
health       whether each works, and whether anything arrives
supervision  supervisord: its settings, and how it is told what to do
release      the code that a deployment runs, a copy of its own
operation    up, status, logs, down
backup       backup and restore
upgrade      from one release to the next, and back
drift        what is in force and is other than in the repository
"""
