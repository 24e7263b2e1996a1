"""Fetches pages by a schedule and writes what is new to topics.

Pure: `tables`, `items` and `exposition` (a body to rows), `facts` (what is new), `polite` (whether,
when and how to ask), `reading` (all of it for one answer), `jobs`, `sources` (what is asked for).
The shell: `fetching` (HTTP), `ledger` (topics), `scraper` (one attempt at one job), `schedule`
(when), `once` (a whole job, for other schedulers).
"""
