-- Whoever runs the migrations may act as the roles: they have no passwords to log in with, unless
-- somebody gives them some. A superuser may anyway; the owner of a database alone may not.
GRANT flights_writer, flights_reader TO CURRENT_USER;
