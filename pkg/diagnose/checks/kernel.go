package checks

// Setting is a kernel setting in a file.
type Setting struct{ Name, Value, File string }

// Overridden reports settings that other files change at boot. systemd reads those files after the file of paictl. The argument later contains the
// settings in those files. The argument want contains the values that the cluster needs. The argument ours is the name of paictl's file.
func Overridden(later []Setting, want map[string]string, ours string) (out []Finding) {
	for _, x := range later {
		if x.Value != want[x.Name] {
			out = append(out, advice(problem("sysctl", "remove the line from "+x.File+": it is read after "+ours,
				"%s sets %s to %s at the next boot; the cluster needs %s", x.File, x.Name, x.Value, want[x.Name])))
		}
	}
	return out
}
