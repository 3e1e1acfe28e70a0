package attacks

import (
	"net/http"
	"strings"
)

// names returns attempts with names and paths that resemble the owner's job or could resolve to it.
func names(w *World) []Attack {
	var out []Attack
	for _, path := range []string{
		w.detail(), w.detail() + "/", w.detail() + ".", w.detail() + "/.", w.detail() + "%20", w.detail() + "%09", w.detail() + "%00", w.detail() + "%0d%0aX:%20y", w.detail() + ";x=y", w.detail() + "?user=" + w.Thief + "&owner=" + w.Thief,
		"/api/v2/jobs/" + strings.ToUpper(w.Owner) + "~" + w.Job, "/api/v2/jobs/" + w.Owner + "~" + strings.ToUpper(w.Job),
		"/api/v2/jobs/" + w.Owner + "%7E" + w.Job, "/api/v2/jobs/" + w.Owner + "%7e" + w.Job, "/api/v2/jobs/" + w.Owner + "%257E" + w.Job,
		"/api/v2/jobs/" + w.Object, "/api/v2/jobs/" + w.Thief + "~" + w.Object, "/api/v2/jobs/~" + w.Job, "/api/v2/jobs/" + w.Owner + "~~" + w.Job, "/api/v2/jobs/" + w.Thief + "~" + w.Owner + "~" + w.Job,
		"/api/v2/jobs/" + w.Thief + "~" + w.Own + "/../" + w.Owner + "~" + w.Job, "/api/v2/jobs/" + w.Thief + "~" + w.Own + "%2f..%2f" + w.Owner + "~" + w.Job, "/api/v2/jobs/" + w.Thief + "~" + w.Own + "/%2e%2e/" + w.Owner + "~" + w.Job,
		"/api/v2/jobs/" + w.Thief + "~" + w.Own + "\\..\\" + w.Owner + "~" + w.Job, "/api/v2/jobs/" + w.Thief + "~" + w.Own + "%5c..%5c" + w.Owner + "~" + w.Job, "/api/v2/jobs/" + w.Thief + "~" + w.Own + "/..;/" + w.Owner + "~" + w.Job,
		"/api/v2/jobs/%c0%ae%c0%ae/" + w.Owner + "~" + w.Job, "/api/v2/jobs/%u002e%u002e/" + w.Owner + "~" + w.Job, "//api/v2/jobs/" + w.Owner + "~" + w.Job, "/api//v2/jobs/" + w.Owner + "~" + w.Job, "/./api/v2/jobs/" + w.Owner + "~" + w.Job,
		"/rest-server" + w.detail(), "/REST-SERVER" + strings.ToUpper("/api/v2/jobs/") + w.Owner + "~" + w.Job, "/rest-server/rest-server" + w.detail(), "/prometheus/.." + w.detail(),
		"/api/v2/jobs/" + lookalike(w.Owner) + "~" + w.Job, "/api/v2/jobs/" + wide(w.Owner) + "~" + w.Job, "/api/v2/jobs/" + w.Owner + "%e2%80%8b~" + w.Job, "/api/v2/jobs/" + w.Owner + "~" + w.Job + "%cc%81", "/api/v2/jobs/%e2%80%ae" + w.Owner + "~" + w.Job,
		"/api/v1/user/" + w.Owner + "/jobs/" + w.Job, "/api/v1/jobs/" + w.Owner + "~" + w.Job, "https://" + w.host() + w.detail(), "https://other.example" + w.detail(),
		w.place(), w.place() + "/brief", "/api/v3/jobs/" + w.Thief + "/" + w.Object, "/api/v3/jobs/" + w.Thief + "/" + w.Owner + "~" + w.Job, "/api/v3/jobs/" + w.Thief + "/..%2f" + w.Owner + "%2f" + w.Job, "/api/v3/jobs/" + w.Thief + "/../" + w.Owner + "/" + w.Job,
		"/api/v3/jobs/" + w.Owner + "," + w.Thief + "/" + w.Job, "/api/v3/jobs/*/" + w.Job, "/api/v3/jobs/" + w.Owner + "/*", "/api/v3/jobs/" + w.Owner + "'--/" + w.Job,
	} {
		out = append(out, Attack{Name: "the path " + path, Raw: w.ask("GET", path, w.ThiefToken), Want: nowhere})
	}
	for _, query := range []string{"?user=" + w.Owner, "?username=" + w.Owner, "?user=" + w.Owner + "&user=" + w.Thief, "?keyword=" + w.Job, "?vc=", "?user[]=" + w.Owner, "?user=" + w.Thief + "%00" + w.Owner, "?limit=-1", "?keyword=%25", "?keyword=%27%20OR%201=1--", "?name=" + w.Job, "?order=jobName,ASC;select"} {
		for _, path := range []string{"/api/v2/jobs", "/api/v3/jobs"} {
			out = append(out, Attack{Name: "the list " + path + query, Raw: w.ask("GET", path+query, w.ThiefToken), Want: []int{200, 400, 403}})
		}
	}
	return out
}

// lookalike replaces letters with similar letters of another alphabet. wide replaces letters with their full-width forms.
func lookalike(name string) string {
	return strings.NewReplacer("a", "%d0%b0", "e", "%d0%b5", "o", "%d0%be").Replace(name)
}

func wide(name string) string {
	b := &strings.Builder{}
	for _, c := range name {
		if c >= 'a' && c <= 'z' {
			c += 'ａ' - 'a'
		}
		b.WriteRune(c)
	}
	return escaped(b.String())
}

func escaped(text string) string {
	const digits = "0123456789abcdef"
	b := &strings.Builder{}
	for i := range len(text) {
		if c := text[i]; c < 0x80 {
			b.WriteByte(c)
		} else {
			b.WriteString("%" + string(digits[c>>4]) + string(digits[c&15]))
		}
	}
	return b.String()
}

// exec returns the path that runs a command in the first task of a job. The command prints the task's environment.
func (w *World) exec(user, job string) string {
	return "/api/v3/jobs/" + user + "/" + job + "/tasks/main/0/exec?command=cat&command=/proc/1/environ&stdout=true"
}

func (w *World) upgrade(target, token string, headers ...string) string {
	return w.ask("GET", target, token, append([]string{"Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}, headers...)...)
}

// verbs returns attempts at all operations on a job, by users from whom the job is hidden, and by users who may only read the job.
func verbs(w *World) []Attack {
	type verb struct{ method, path, body string }
	changes := []verb{
		{"PUT", w.detail() + "/executionType", `{"value":"STOP"}`}, {"POST", w.place() + "/stop", ""}, {"POST", w.place() + "/retry", ""}, {"POST", w.place() + "/scale", `{"tasks":9}`},
		{"DELETE", w.place(), ""}, {"DELETE", w.place() + "?history=true", ""}, {"PUT", w.detail() + "/tag", `{"value":"stolen"}`}, {"PUT", w.place() + "/tags", `{"tags":["stolen"]}`}, {"DELETE", w.place() + "/tags", `{"tags":["stolen"]}`},
		{"GET", w.place() + "/targets", ""},
	}
	looks := []verb{{"GET", w.detail() + "/config", ""}, {"GET", w.detail() + "/events", ""}, {"GET", w.place() + "/why", ""}, {"GET", w.place() + "/logs", ""}, {"GET", w.place() + "/logs?follow=true", ""}, {"GET", w.place() + "/follow", ""},
		{"GET", w.place() + "/top", ""}, {"GET", w.place() + "/events", ""}, {"GET", w.place() + "/freename", ""}, {"GET", w.place() + "/parent", ""}, {"HEAD", w.detail(), ""}, {"HEAD", w.detail() + "/config", ""}}
	var out []Attack
	for _, v := range append(changes, looks...) {
		out = append(out, Attack{Name: "a stranger's " + v.method + " " + v.path, Raw: w.send(v.method, v.path, w.ThiefToken, v.body), Want: hidden})
	}
	for _, v := range changes {
		if w.ReaderToken != "" {
			out = append(out, Attack{Name: "a reader's " + v.method + " " + v.path, Raw: w.send(v.method, v.path, w.ReaderToken, v.body), Want: forbidden})
		}
	}
	one := func(name, raw string, want []int) { out = append(out, Attack{Name: name, Raw: raw, Want: want}) }
	one("the key of a job", w.ask("GET", w.detail()+"/ssh", w.ThiefToken), hidden)
	one("a shell in a job", w.upgrade(w.exec(w.Owner, w.Job), w.ThiefToken), hidden)
	one("ports of a job", w.upgrade(w.place()+"/tasks/main/0/portforward", w.ThiefToken), hidden)
	one("a shell over SPDY", w.ask("POST", w.exec(w.Owner, w.Job), w.ThiefToken, "Upgrade", "SPDY/3.1", "X-Stream-Protocol-Version", "v4.channel.k8s.io"), hidden)
	one("a shell without a token", w.upgrade(w.exec(w.Owner, w.Job), ""), unknown)
	one("a shell from a page of another origin, with its cookie", w.upgrade(w.exec(w.Owner, w.Job), "", "Origin", "https://evil.example", "Cookie", cookie+w.OwnerToken), forbidden)
	one("a shell by the cookie alone", w.upgrade(w.exec(w.Owner, w.Job), "", "Cookie", cookie+w.OwnerToken), unknown)
	one("a shell by a guessed ticket", w.upgrade(w.exec(w.Owner, w.Job), "", "Origin", "https://"+w.host(), "Sec-WebSocket-Protocol", ticket+"AAAAAAAAAAAAAAAAAAAAAAAAAA"), forbidden)
	one("a shell in the task of another by a path", w.upgrade("/api/v3/jobs/"+w.Thief+"/"+w.Own+"/tasks/..%2f..%2f"+w.Owner+"/0/exec?command=id", w.ThiefToken), nowhere)
	one("a shell in a pod by its name", w.upgrade("/api/v3/jobs/"+w.Thief+"/"+w.Own+"/tasks/"+w.Object+"-main-0/0/exec?command=id", w.ThiefToken), nowhere)
	one("a task with a negative index", w.upgrade("/api/v3/jobs/"+w.Thief+"/"+w.Own+"/tasks/main/-1/exec?command=id", w.ThiefToken), nowhere)
	one("a task with a very large index", w.upgrade("/api/v3/jobs/"+w.Thief+"/"+w.Own+"/tasks/main/99999999999999999999/exec?command=id", w.ThiefToken), nowhere)
	if w.ReaderToken != "" {
		one("a reader's shell", w.upgrade(w.exec(w.Owner, w.Job), w.ReaderToken), forbidden)
		one("a reader's key", w.ask("GET", w.detail()+"/ssh", w.ReaderToken), []int{http.StatusForbidden, http.StatusNotFound})
	}
	return append(out, submissions(w)...)
}
