"""What the engines on a local file system share: folders, the lock, the bell."""
