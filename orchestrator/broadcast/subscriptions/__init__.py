"""What people subscribe to: results for feed readers (RSS), the schedule for calendars (ICS)."""
