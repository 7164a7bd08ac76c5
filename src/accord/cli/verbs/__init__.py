"""What each verb does with its words and says to people; the work is done by the operations."""
