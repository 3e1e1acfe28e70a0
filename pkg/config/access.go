package config

// ReadFiles returns the texts of the four files of a configuration folder by file name.
func ReadFiles(dir string) (map[string][]byte, error) { return readFiles(dir) }

// LooksSecret reports whether the name of a key suggests that its value is secret. Use it for keys without a known schema.
func LooksSecret(key string) bool { return looksSecret(key) }
