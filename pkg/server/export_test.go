package server

// These are for tests outside the package.
var (
	Normal    = normal
	NewTable  = newTable
	Forwarded = forwarded
	// ShownQuery returns a query in the form that is logged.
	ShownQuery = shownQuery
)

// Add and Find call the methods of the table.
func (t *table) Add(method, path string)             { t.add(method, path) }
func (t *table) Find(path string) (string, []string) { return t.find(path) }
