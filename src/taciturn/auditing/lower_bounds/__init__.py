"""Lower bounds on ε from what attacks found, and how they compare with a certificate."""
