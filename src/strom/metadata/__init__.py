"""What the cluster is: its records, its image, and the controller's decisions."""
