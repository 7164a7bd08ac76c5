"""What engines on other machines share."""
