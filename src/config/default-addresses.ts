/** The default address of both listeners. */
export const defaultHost = '127.0.0.1';

/** The default port of the listener for clients. */
export const defaultPort = 8080;

/** The default port of the admin listener. */
export const defaultAdminPort = 8081;

/** The database where neither the config nor the environment names one. */
export const defaultDatabaseUrl = 'sqlite:data/textgate.db';
