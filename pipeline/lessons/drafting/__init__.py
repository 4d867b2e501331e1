"""What the offline author writes with: plans, frames and questions made by code, no model."""
