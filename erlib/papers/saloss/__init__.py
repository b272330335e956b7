""" "Enjoy the Salience" (Chrysostomou and Aletras): salience as a prior of attention."""
