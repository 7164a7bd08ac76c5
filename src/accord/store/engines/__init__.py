"""One file per engine, named as in a store's URL, each with `open_store(place)`."""
