"""What commands show: tables, cards, progress; nothing is decided here."""
