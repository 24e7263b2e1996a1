"""Fetches pages by a schedule and writes what is new to topics.

Pure: `tables` and `exposition` (a body to rows), `facts` (what is new), `polite` (whether, when and
how to ask), `reading` (all of it for one answer). The shell: `fetching` (HTTP), `ledger` (topics),
`scraper` (one attempt at one job), `schedule` (when), `once` (a whole job, for other schedulers).
"""
