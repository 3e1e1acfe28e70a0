package protocol

import (
	"encoding/json"
	"slices"
	"strings"
)

// pluginKey is the key of the plugins in extras, and the prefix of the plugins' names in prerequisites.
const pluginKey = "com.microsoft.pai.runtimeplugin"

// plugins sets the plugins of a role: first the plugins in its prerequisites, and then the plugins in extras.
func (p place) plugins(role *Role, s scope) {
	for _, ref := range p.get("prerequisites").list(0) {
		if !ref.is(kindText) {
			continue
		}
		found := p.r.anyPrerequisite(ref)
		if !found.there() {
			continue
		}
		if plugin := found.get("plugin"); plugin.there() && plugin.v.kind == kindText {
			found.prerequisitePlugin(plugin, role, s)
		}
	}
	extras := place{r: p.r, v: p.r.tree.root}.get("extras")
	if !extras.there() || extras.v.kind != kindMap {
		return
	}
	list := extras.get(pluginKey)
	if !list.there() || list.v.kind != kindList {
		return
	}
	for i, item := range list.v.items {
		at := place{p.r, item, list.path.With(i)}
		if item.kind == kindMap && at.appliesTo(role.Name) {
			at.extrasPlugin(role, s)
		}
	}
}

// anyPrerequisite returns the place of the prerequisite with the name that ref contains. The prerequisite may have any type.
func (r *reader) anyPrerequisite(ref place) place {
	list := place{r: r, v: r.tree.root}.get("prerequisites")
	var names []string
	if list.there() && list.v.kind == kindList {
		for i, item := range list.v.items {
			if name := item.field("name"); name != nil && name.kind == kindText {
				if name.text() == ref.v.text() {
					return place{r, item, list.path.With(i)}
				}
				names = append(names, name.text())
			}
		}
	}
	ref.report("job/unknown-prerequisite", "there is no prerequisite "+shorten(ref.v.text()), oneOf(ref.v.text(), "prerequisites has ", names))
	return place{r: r}
}

func (p place) prerequisitePlugin(plugin place, role *Role, s scope) {
	name, ours := strings.CutPrefix(plugin.v.text(), pluginKey+".")
	if !ours {
		plugin.warn("job/plugin", "it is not a plugin of the runtime, and has no effect", "their names begin with "+pluginKey+".")
		return
	}
	if !plugin.knownPlugin(name) {
		return
	}
	parameters := map[string]any{}
	for _, f := range p.each() {
		if n := f.name(); n != "plugin" && n != "failurePolicy" && n != "type" {
			parameters[n] = f.any(s)
		}
	}
	p.addPlugin(name, parameters, role)
}

func (p place) extrasPlugin(role *Role, s scope) {
	plugin := p.get("plugin")
	if !plugin.there() || plugin.v.kind != kindText {
		return // reported by checkPlugins
	}
	var parameters any
	if f := p.get("parameters"); f.there() && f.v.kind == kindMap {
		parameters = f.any(s)
	}
	if name := strings.TrimPrefix(plugin.v.text(), pluginKey+"."); slices.Contains(knownPlugins(), name) {
		p.addPlugin(name, parameters, role)
	}
}

func (p place) addPlugin(name string, parameters any, role *Role) {
	plugin := Plugin{Name: name, IgnoreFailure: p.failurePolicy() == "ignore"}
	if parameters != nil {
		b, err := json.Marshal(parameters)
		if err != nil { // numbers are finite and keys are strings, so nothing can fail
			p.report("job/plugin", "the parameters can't be written as JSON", "")
		}
		plugin.Parameters = b
	}
	role.Plugins = append(role.Plugins, plugin)
}

func (p place) failurePolicy() string {
	if f := p.get("failurePolicy"); f.there() && f.v.kind == kindText {
		return f.v.text()
	}
	return ""
}

func (p place) checkFailurePolicy() {
	if f := p.get("failurePolicy"); f.is(kindText) && !f.refers() && f.v.text() != "fail" && f.v.text() != "ignore" {
		f.report("job/plugin", "a plugin's failure ends the task, or is ignored", "write fail or ignore")
	}
}

func (p place) knownPlugin(name string) bool {
	if slices.Contains(knownPlugins(), name) {
		return true
	}
	p.report("job/plugin", "the runtime has no plugin "+shorten(name), oneOf(name, "the plugins are ", knownPlugins()))
	return false
}

// appliesTo reports whether a plugin in extras applies to a role. A plugin without a list of roles applies to all roles.
func (p place) appliesTo(role string) bool {
	roles := p.get("taskroles")
	if !roles.there() || roles.v.kind != kindList {
		return true
	}
	return slices.ContainsFunc(roles.v.items, func(v *value) bool { return v.kind == kindText && v.text() == role })
}

// checkPlugins checks the plugins in extras. It runs once, so that a mistake isn't reported again for each role.
func (r *reader) checkPlugins(list place) {
	for _, p := range list.list(0) {
		if !p.object([]string{"plugin", "parameters", "failurePolicy", "taskroles"}, "plugin") {
			continue
		}
		if plugin := p.get("plugin"); plugin.is(kindText) && !plugin.refers() {
			plugin.knownPlugin(strings.TrimPrefix(plugin.v.text(), pluginKey+"."))
		}
		parameters := p.get("parameters")
		if plugin := p.get("plugin"); plugin.there() && plugin.v.kind == kindText && parameters.is(kindMap) {
			parameters.checkParameters(strings.TrimPrefix(plugin.v.text(), pluginKey+"."))
		}
		p.checkFailurePolicy()
		for _, role := range p.get("taskroles").list(0) {
			if role.is(kindText) && !role.refers() && !r.hasRole(role.v.text()) {
				role.warn("job/unknown-role", "there is no role "+shorten(role.v.text()), oneOf(role.v.text(), "the roles are ", r.roleNames()))
			}
		}
	}
}
