package portal

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/server"
)

// former returns routes for the addresses of OpenPAI's portal, because mails, notebooks and extensions of editors link to these addresses. It leaves
// out /view.html, because the extension for VS Code recognizes the portal by the absence of that page.
func former() []server.Route {
	to := map[string]func(url.Values) string{
		"/index.html": home, "/home.html": home, "/dashboard.html": home, "/virtual-clusters.html": home, "/user-profile.html": profile, "/user-view.html": people, "/batch-register.html": people, "/plugin.html": home,
		"/cluster-view/services.html": home, "/cluster-view/hardware.html": home, "/cluster-view/k8s.html": home, "/cluster-view/hardware/detail.html": home,
		"/submit.html": submission, "/submit_demo.html": submission, "/submit_v1.html": submission,
		"/job-list.html": list, "/job-detail.html": job(""), "/task-attempt.html": job("attempts"), "/job-event.html": job("events"), "/job-transfer.html": job(""),
	}
	var out []server.Route
	for _, from := range slices.Sorted(maps.Keys(to)) {
		target := to[from]
		out = append(out, server.Route{Method: http.MethodGet, Path: from, Rule: "open", Summary: "Redirects to the page that replaces one of OpenPAI's", Media: anything, Status: http.StatusFound, Serve: func(c *server.Call) error {
			h := c.Writer.Header()
			h.Set("Cache-Control", "no-store")
			h.Set("Location", "./"+up(c.Request)+target(c.Request.URL.Query()))
			c.Writer.WriteHeader(http.StatusFound)
			return nil
		}})
	}
	return out
}

func home(url.Values) string { return "" }

// people returns the address of the page with the users, for administrators. The portal redirects other people to the home page.
func people(url.Values) string { return "admin/people?else=home" }

func profile(url.Values) string { return "profile" }

// job returns a function that returns the address of a tab of a job's page. OpenPAI's page of events has the name of the user in a different
// parameter.
func job(tab string) func(url.Values) string {
	return func(q url.Values) string {
		user, name := q.Get("username"), q.Get("jobName")
		if user == "" {
			user = q.Get("userName")
		}
		if user == "" || name == "" {
			return "jobs"
		}
		to := "jobs/" + url.PathEscape(user) + "/" + url.PathEscape(name)
		if tab != "" {
			to += "?tab=" + tab
		}
		return to
	}
}

func submission(q url.Values) string {
	if user, name := q.Get("user"), q.Get("jobName"); q.Get("op") == "resubmit" && user != "" && name != "" {
		return "submit?" + url.Values{"clone": {user + "/" + name}}.Encode()
	}
	return "submit"
}

func list(q url.Values) string {
	out := url.Values{}
	for from, to := range map[string]string{"vcName": "vc", "user": "user", "keyword": "keyword", "status": "state"} {
		if v := q.Get(from); v != "" {
			if to == "state" {
				v = strings.ToLower(v) // OpenPAI capitalizes states, as in Waiting
			}
			out.Set(to, v)
		}
	}
	if len(out) == 0 {
		return "jobs"
	}
	return "jobs?" + out.Encode()
}
