package checks

// Setting is a kernel setting, and the file that contains it.
type Setting struct{ Name, Value, File string }

// Overridden reports settings that other files change at boot, because systemd reads those files after ours. later are the settings in those files,
// want the values that the cluster needs, and ours is the name of our file.
func Overridden(later []Setting, want map[string]string, ours string) (out []Finding) {
	for _, x := range later {
		if x.Value != want[x.Name] {
			out = append(out, advice(problem("sysctl", "remove the line from "+x.File+": it is read after "+ours,
				"%s sets %s to %s at the next boot; the cluster needs %s", x.File, x.Name, x.Value, want[x.Name])))
		}
	}
	return out
}
