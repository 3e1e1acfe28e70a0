package server

// For tests outside of the package.
var (
	Normal    = normal
	NewTable  = newTable
	Forwarded = forwarded
	// ShownQuery is the query in the log.
	ShownQuery = shownQuery
)

// Add and Find are the table's methods.
func (t *table) Add(method, path string)             { t.add(method, path) }
func (t *table) Find(path string) (string, []string) { return t.find(path) }
