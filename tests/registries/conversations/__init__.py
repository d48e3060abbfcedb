"""What is tried, one function a conversation."""
