"""What a cache holds, for people: tables, ages, sizes."""
