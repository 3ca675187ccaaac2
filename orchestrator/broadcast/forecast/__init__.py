"""What results say of strength and of what may come, computed beside the page in a process."""
