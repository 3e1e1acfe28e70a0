package attacks

import "net/http"

// people returns attempts to act as another person, to get more rights, and to access other people's tokens.
func people(w *World) []Attack {
	refused := []int{http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusConflict}
	var out []Attack
	for _, a := range [][3]string{
		{"PUT", "/api/v2/users/" + w.Thief + "/admin", `{"admin":true}`},
		{"PUT", "/api/v2/users/me/admin", `{"admin":true}`},
		{"PUT", "/api/v2/users/" + w.Thief + "/grouplist", `{"grouplist":["administrators"]}`},
		{"PUT", "/api/v2/users/" + w.Thief + "/group", `{"groupname":"administrators"}`},
		{"PUT", "/api/v2/users/" + w.Owner + "/password", `{"newPassword":"a password of mine 1","oldPassword":"none"}`},
		{"PUT", "/api/v2/users/" + w.Owner + "/email", `{"email":"thief@example.org"}`},
		{"PUT", "/api/v2/users/" + w.Owner + "/extension", `{"extension":{"sshKeys":["ssh-ed25519 AAAA"]}}`},
		{"DELETE", "/api/v2/users/" + w.Owner, ""},
		{"POST", "/api/v2/users", `{"username":"made-by-thief","password":"a password of mine 1","admin":true}`},
		{"PUT", "/api/v3/users/" + w.Thief, `{"was":{"name":"` + w.Thief + `"},"spec":{"name":"` + w.Thief + `","groups":["administrators"]}}`},
		{"PUT", "/api/v3/users/" + w.Owner, `{"was":{"name":"` + w.Owner + `"},"spec":{"name":"` + w.Owner + `","identities":[{"provider":"x","subject":"thief"}]}}`},
		{"PUT", "/api/v3/users/" + w.Owner + "/password", `{"password":"a password of mine 1"}`},
		{"DELETE", "/api/v3/users/" + w.Owner, ""},
		{"POST", "/api/v3/users", `{"name":"made-by-thief","groups":["administrators"]}`},
		{"PUT", "/api/v3/groups/administrators", `{"spec":{"name":"administrators","administrator":true,"external":[{"provider":"x","name":"everyone"}]}}`},
		{"PUT", "/api/v3/groups/of-thief", `{"spec":{"name":"of-thief","administrator":true}}`},
		{"DELETE", "/api/v3/groups/administrators", ""},
		{"GET", "/api/v3/tokens?user=" + w.Owner, ""}, {"GET", "/api/v3/tokens?all", ""}, {"DELETE", "/api/v3/tokens/" + w.TokenID, ""}, {"DELETE", "/api/v2/tokens/" + w.TokenID, ""},
		{"POST", "/api/v3/tokens", `{"label":"x","scopes":["root"]}`}, {"POST", "/api/v3/tokens", `{"label":"x","scopes":["read"],"user":"` + w.Owner + `","seconds":-1}`},
		{"GET", "/api/v3/audit?actor=" + w.Owner, ""}, {"GET", "/api/v3/audit?owner=" + w.Owner + "&actor=" + w.Owner, ""},
		{"GET", "/api/v3/usage?user=" + w.Owner, ""}, {"GET", "/api/v2/groups/administrators/userlist", ""},
		{"POST", "/api/v3/first", `{"code":"00000000000000000000","username":"` + w.Thief + `","password":"a password of mine 1"}`},
		{"POST", "/oauth/token", "grant_type=client_credentials"}, {"POST", "/oauth/token", "grant_type=refresh_token&refresh_token=" + w.ThiefToken}, {"POST", "/oauth/token", "grant_type=refresh_token&refresh_token=" + w.OwnerToken},
		{"POST", "/oauth/token", "grant_type=urn:ietf:params:oauth:grant-type:token-exchange&subject_token=" + w.ThiefToken}, {"GET", "/oauth/token?grant_type=password&username=" + w.Owner + "&password=x", ""},
		{"POST", "/api/v2/authn/basic/login", `{"username":"` + w.Owner + `","password":{"$ne":""}}`}, {"POST", "/api/v2/authn/basic/login", `{"username":["` + w.Owner + `"],"password":["x"]}`},
		{"POST", "/api/v2/authn/basic/login", `{"username":"` + w.Owner + `","password":""}`}, {"POST", "/api/v2/authn/basic/login", `{"username":"` + w.Owner + `"}`},
		{"PUT", "/api/v3/code/" + zeros, "not what the checksum says"}, {"GET", "/api/v3/code/" + zeros, ""}, {"GET", "/api/v3/code/..%2f..%2fetc%2fpasswd", ""},
	} {
		out = append(out, Attack{Name: a[0] + " " + a[1] + " " + a[2], Raw: w.send(a[0], a[1], w.ThiefToken, a[2]), Want: refused})
	}
	// People may change these fields themselves, because the fields give no rights.
	out = append(out, Attack{Name: "a change of oneself that adds more", Raw: w.send("PUT", "/api/v2/users/"+w.Thief+"/extension", w.ThiefToken, `{"extension":{"admin":true,"grouplist":["administrators"],"virtualCluster":["default"]},"admin":true,"grouplist":["administrators"]}`),
		Want: []int{http.StatusOK, http.StatusCreated, http.StatusBadRequest}})
	for _, path := range []string{"/metrics", "/readyz", "/debug/pprof/heap", "/debug/vars", "/.git/config", "/.env", "/api/v1/namespaces/pai-people/secrets", "/apis", "/openapi/v2", "/api/v1/namespaces/pai-jobs/pods", "/var/run/secrets/kubernetes.io/serviceaccount/token", "/settings.json", "/etc/pai-server/settings.json"} {
		out = append(out, Attack{Name: "the inside: " + path, Raw: w.ask("GET", path, w.ThiefToken), Want: hidden})
	}
	return out
}

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"
