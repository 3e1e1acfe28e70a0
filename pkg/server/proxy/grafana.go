package proxy

import (
	"slices"
	"strings"
)

// labelPrefix and labelSuffix surround the label in the path of a request for the values of a Prometheus label.
const (
	labelPrefix = "/api/v1/label/"
	labelSuffix = "/values"
)

// resources lists the paths of a Prometheus data source that Grafana's pages request, in addition to queries.
var resources = []string{"/api/v1/metadata", "/api/v1/rules", "/api/v1/status/buildinfo", "/suggestions", "/version-detect"}

// closedInGrafana reports whether a path is blocked because Grafana would forward it to a data source, although Grafana's pages don't request it.
// Grafana forwards any path, and adds the password of the data source.
func closedInGrafana(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 1 && parts[0] == "apis":
		return strings.HasSuffix(parts[1], ".datasource.grafana.app") // another path to the same data source
	case len(parts) < 2 || parts[0] != "api" || parts[1] != "datasources":
		return false
	}
	at := slices.Index(parts, "resources")
	return at > 0 && !resource("/"+strings.Join(parts[at+1:], "/"))
}

// resource reports whether a path of a data source is allowed.
func resource(path string) bool {
	if slices.Contains(resources, path) || slices.Contains(promQueries, path) {
		return true
	}
	label, found := strings.CutPrefix(path, labelPrefix)
	label, ends := strings.CutSuffix(label, labelSuffix)
	return found && ends && label != "" && !strings.Contains(label, "/")
}
