package server

// OrderedQuery is how a question is understood.
var OrderedQuery = orderedQuery
