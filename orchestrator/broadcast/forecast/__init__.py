"""What results say of strength and of what may come, reckoned beside the page in a process."""
