"""Getting a farm back: copies of journals and archives, restore, backup."""
