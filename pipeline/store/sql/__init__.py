"""The stores in a database (SQLite, PostgreSQL); they need the extra `sql`."""
