"""What a Host insists on: agreement, approvals, purposes, floors, budgets and bits, and the one gate that applies them."""
