"""Programs from elsewhere as graphs: each file reads one kind and needs one optional package."""
