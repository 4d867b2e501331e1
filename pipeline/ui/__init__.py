"""The desk: pages in a browser over the runs of a store, to watch, steer and review them."""
