package server

// For tests in other packages.
var (
	Normal    = normal
	NewTable  = newTable
	Forwarded = forwarded
	// ShownQuery returns the logged form of a query.
	ShownQuery = shownQuery
)

// Add and Find call the methods of the table.
func (t *table) Add(method, path string)             { t.add(method, path) }
func (t *table) Find(path string) (string, []string) { return t.find(path) }
