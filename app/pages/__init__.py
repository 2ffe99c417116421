"""The pages of the workshop, one module each: what it shows at which path, and how it is wired."""
