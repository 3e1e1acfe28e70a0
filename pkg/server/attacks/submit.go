package attacks

import "net/http"

// Taken is the prefix of the names of the jobs that attempts try to create for other people.
const Taken = "taken"

// File returns a job file with additional lines.
func File(name, more string) string {
	return "protocolVersion: 2\nname: " + name + "\ntype: job\nprerequisites: [{name: i, type: dockerimage, uri: 'busybox:1'}]\n" +
		"taskRoles: {main: {instances: 1, dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}, commands: ['sleep 1']}}\n" + more
}

// submissions returns attempts to submit jobs that would belong to other people, or would contain other people's data. Tests check that the owner
// doesn't get any of these jobs.
func submissions(w *World) []Attack {
	refused := []int{http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusConflict}
	var out []Attack
	for name, text := range map[string]string{
		"a job with another's name in it":     File(w.Owner+"~"+Taken, ""),
		"a job with a path as its name":       File("../"+w.Owner+"/"+Taken, ""),
		"a job with its user in the file":     File(Taken+"-1", "user: "+w.Owner+"\nusername: "+w.Owner+"\n"),
		"a job with metadata in the file":     File(Taken+"-2", "metadata: {labels: {user: "+w.Owner+"}}\n"),
		"a job with two names":                File(Taken+"-3", "name: "+Taken+"-4\n"),
		"a job in a virtual cluster not ours": File(Taken+"-5", "defaults: {virtualCluster: not-granted}\n"),
		"a job with a storage not granted":    File(Taken+"-6", "extras: {com.microsoft.pai.runtimeplugin: [{plugin: teamwise_storage, parameters: {storageConfigNames: [not-granted]}}]}\n"),
		"a job with a privileged pod":         File(Taken+"-7", "extras: {hostPID: true, privileged: true, serviceAccountName: rest-server}\nspec: {hostNetwork: true}\n"),
	} {
		for path, as := range map[string]string{"/api/v2/jobs": text, "/rest-server/api/v2/jobs?user=" + w.Owner: text} {
			out = append(out, Attack{Name: name + ", to " + path, Raw: w.send("POST", path, w.ThiefToken, as, "Content-Type", "text/yaml"), Want: refused})
		}
	}
	for name, body := range map[string]string{
		"a submission in another's name":      `{"text":"","user":"` + w.Owner + `"}`,
		"a job that replaces the owner's":     `{"text":"","job":"` + w.Owner + "/" + w.Job + `"}`,
		"JSON with a key twice":               `{"text":"a","text":"b"}`,
		"JSON that is too deep":               nested(5000),
		"JSON with a number where text is":    `{"text":1}`,
		"JSON with a prototype":               `{"__proto__":{"administrator":true},"text":""}`,
		"a body that is followed by another":  `{"text":""}{"text":""}`,
		"a body that is YAML with an object":  "!!python/object/apply:os.system ['id']",
		"a body that is YAML with many names": "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d]\n",
	} {
		for _, path := range []string{"/api/v2/jobs", "/api/v3/jobs"} {
			out = append(out, Attack{Name: name + ", to " + path, Raw: w.send("POST", path, w.ThiefToken, body, "Content-Type", "application/json"), Want: refused})
		}
	}
	return out
}

// nested returns JSON of n nested lists.
func nested(n int) string {
	b := make([]byte, 0, 2*n)
	for range n {
		b = append(b, '[')
	}
	for range n {
		b = append(b, ']')
	}
	return string(b)
}
