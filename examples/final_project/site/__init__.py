"""A small web site with rocket flights that change while one looks; the thing to be scraped."""
