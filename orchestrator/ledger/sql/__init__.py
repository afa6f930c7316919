"""The ledger in a SQL database, through SQLAlchemy."""
