"""What is remembered: runs as journals, with blobs, heads and owners; and the account over all of them."""
