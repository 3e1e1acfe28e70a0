package v2

import (
	"context"
	"net/http"

	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/desk"
)

// info is what the server calls itself. Clients want these four keys, and these two values.
type info struct {
	Name         string `json:"name"`
	Version      string `json:"version"`
	LauncherType string `json:"launcherType"`
	AuthnMethod  string `json:"authnMethod"`
}

// authnInfo says how to sign in.
type authnInfo struct {
	Type   string `json:"authn_type"`
	URI    string `json:"loginURI"`
	Method string `json:"loginURIMethod"`
	// Methods are all ways to sign in.
	Methods []string `json:"methods"`
}

func infoRoutes(version string) []server.Route {
	about := func(context.Context, *desk.Desk, *struct{}) (*info, error) {
		return &info{"PAI RESTful API", version, "k8s", "basic"}, nil
	}
	return []server.Route{
		server.Text("", prefix, "open", "Says that the API is here", "PAI RESTful API v2 (beta version)"),
		server.JSON("", prefix+"/info", "open", "Says what the server calls itself", about, server.Also(old)),
		server.Text(http.MethodGet, "/healthz", "open", "Says that the server is here, as the front of an OpenPAI cluster does", "Pylon ready.", server.Also(prefix+"/healthz", old+"/healthz")),
		server.JSON(http.MethodGet, prefix+"/authn/info", "open", "Says how to sign in", func(context.Context, *desk.Desk, *struct{}) (*authnInfo, error) {
			return &authnInfo{"basic", old + "/authn/basic/login", "post", []string{"password"}}, nil
		}, server.Also(old+"/authn/info")),
	}
}
