package server

// OrderedQuery exports orderedQuery.
var OrderedQuery = orderedQuery
