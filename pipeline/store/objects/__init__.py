"""The store in a bucket of objects (S3 and what speaks its protocol); needs the extra `objects`."""
