package v2

import (
	"context"
	"net/http"

	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
)

// info describes the server. Clients expect these four keys. Two of the keys have fixed values.
type info struct {
	Name         string `json:"name"`
	Version      string `json:"version"`
	LauncherType string `json:"launcherType"`
	AuthnMethod  string `json:"authnMethod"`
}

// authnInfo describes how users sign in.
type authnInfo struct {
	Type   string `json:"authn_type"`
	URI    string `json:"loginURI"`
	Method string `json:"loginURIMethod"`
	// Methods lists all methods to sign in.
	Methods []string `json:"methods"`
}

func infoRoutes(version string) []server.Route {
	about := func(_ context.Context, d *app.Actions, _ *struct{}) (*info, error) {
		return &info{"PAI RESTful API", version, "k8s", authnOf(d).Type}, nil
	}
	return []server.Route{
		server.Text("", prefix, "open", "Reports that the API is available", "PAI RESTful API v2 (beta version)"),
		server.JSON("", prefix+"/info", "open", "Returns the server's name and version", about, server.Also(old)),
		server.Text(http.MethodGet, "/healthz", "open", "Confirms that the server answers, with the text of OpenPAI's front end", "Pylon ready.", server.Also(prefix+"/healthz", old+"/healthz")),
		server.JSON(http.MethodGet, prefix+"/authn/info", "open", "Returns the ways to sign in", func(_ context.Context, d *app.Actions, _ *struct{}) (*authnInfo, error) {
			return authnOf(d), nil
		}, server.Also(old+"/authn/info")),
	}
}

// authnOf returns the methods to sign in. Type, URI and Method describe only one method, because some clients support only one. This method is the
// sign-in with a password, if allowed.
func authnOf(d *app.Actions) *authnInfo {
	w := d.SignInMethods()
	a := &authnInfo{Type: "basic", URI: old + "/authn/basic/login", Method: "post", Methods: []string{}}
	if w.Password {
		a.Methods = append(a.Methods, "password")
	}
	for _, i := range w.Issuers {
		a.Methods = append(a.Methods, "oidc:"+i.Name)
	}
	if !w.Password && len(w.Issuers) > 0 {
		a.Type, a.URI, a.Method = "OIDC", old+"/authn/oidc/login", "get"
	}
	return a
}
