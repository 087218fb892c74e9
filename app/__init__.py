"""The dashboard: navigation, session and panels."""
