package protocol

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/secret"
)

const (
	typeImage  = "dockerimage"
	typeScript = "script"
	typeOutput = "output"
	typeData   = "data"

	dockerHub = "https://index.docker.io/v1/"
)

func prerequisiteTypes() []string { return []string{typeImage, typeScript, typeOutput, typeData} }

func (r *reader) readPrerequisites(p place) {
	for _, one := range p.list(1) {
		if !one.object(nil, "name", "type") {
			continue
		}
		one.get("protocolVersion").protocolVersion()
		one.get("version").version()
		one.get("contributor").text()
		one.get("description").text()
		name := one.get("name").named(jobNames, nameLimit, jobName)
		t := one.get("type")
		kind := t.text()
		switch kind {
		case typeImage:
			one.image()
		case typeScript, typeOutput:
			one.get("uri").text()
		case typeData:
			one.get("uri").texts(0)
		default:
			if t.there() && t.v.kind == kindText && !t.refers() {
				t.report("job/type", "there is no type "+shorten(kind), oneOf(kind, "the types are ", prerequisiteTypes()))
			}
			continue
		}
		if name, ours := strings.CutPrefix(one.get("plugin").text(), pluginKey+"."); ours {
			one.checkParameters(name)
			one.checkFailurePolicy()
		}
		one.get("require").texts(0)
		if kind != typeImage && !one.get("plugin").there() {
			one.unused(imageKeys())
		}
		r.keep(one, kind, name)
	}
}

// keep records a prerequisite. It reports a finding if there is another prerequisite with the same type and name.
func (r *reader) keep(p place, kind, name string) {
	if name == "" {
		return
	}
	of := r.prerequisites[kind]
	if of == nil {
		of = map[string]*value{}
		r.prerequisites[kind] = of
	}
	if of[name] != nil {
		p.get("name").report("job/duplicate", "there are two prerequisites "+shorten(name)+" of the type "+kind, "give one of them another name")
		return
	}
	of[name] = p.v
}

// imageKeys returns the keys that an image can have. Other prerequisites, except plugins, can have the same keys except auth.
func imageKeys() []string {
	return []string{"protocolVersion", "name", "type", "version", "contributor", "description", "uri", "auth", "plugin", "require"}
}

// unused reports warnings for keys that aren't known and therefore have no effect.
func (p place) unused(known []string) {
	for _, f := range p.each() {
		if !slices.Contains(known, f.name()) {
			f.warn("job/unused", fmt.Sprintf("%q is not used here", f.name()), oneOf(f.name(), "the keys here are ", known))
		}
	}
}

func (p place) image() {
	p.object(imageKeys(), "uri")
	if uri := p.get("uri"); uri.is(kindText) {
		text := uri.v.text()
		switch {
		case hasTag(text):
			uri.report("job/reference", "references can't be used in the name of an image", "write the name")
		case text != Masked && !imageName(text):
			uri.report("job/image", "this is not the name of an image", "write a name such as ubuntu:24.04 or registry.example.com/team/image:1.0, in small letters and without https://")
		}
	}
	if auth := p.get("auth"); auth.is(kindMap) {
		auth.unused([]string{"username", "password", "registryuri"})
		for _, f := range auth.each() {
			if name := f.name(); name == "username" || name == "password" || name == "registryuri" {
				f.is(kindText)
			}
		}
	}
}

// global returns the values that references outside of roles may use.
func (r *reader) global() scope {
	return scope{roots: map[string]*value{"$secrets": r.tree.root.field("secrets"), "$parameters": r.tree.root.field("parameters")}}
}

// readLogins fills in the references in the credentials of the images that roles use. The credentials of other images aren't needed.
func (r *reader) readLogins() {
	used := map[string]bool{}
	for i := range r.job.Roles {
		used[r.job.Roles[i].Image] = true
	}
	s := r.global()
	list := place{r: r, v: r.tree.root}.get("prerequisites")
	if !list.there() || list.v.kind != kindList {
		return
	}
	for _, p := range list.list(0) {
		name, uri := p.v.field("name"), p.v.field("uri")
		if t := p.v.field("type"); t == nil || name == nil || uri == nil || t.text() != typeImage {
			continue
		}
		image := Image{Name: name.text(), URI: uri.text(), Used: used[name.text()]}
		if auth := p.get("auth"); auth.there() && auth.v.kind == kindMap {
			image.Auth = auth.login(s)
		}
		r.job.Images = append(r.job.Images, image)
	}
	r.setImages()
}

// login returns the credentials of an image, or nil if it has neither a user name nor a password.
func (p place) login(s scope) *Auth {
	fill := func(name string) string {
		f := p.get(name)
		if !f.there() || f.v.kind != kindText {
			return ""
		}
		return strings.TrimSpace(f.fill(s))
	}
	a := &Auth{Username: fill("username"), Password: secret.String(fill("password")), Registry: fill("registryuri")}
	if a.Username == "" && !a.Password.IsSet() {
		return nil
	}
	if a.Registry == "" {
		a.Registry = dockerHub
	}
	return a
}

// setImages replaces the name of a prerequisite in each role with the image of that prerequisite.
func (r *reader) setImages() {
	for i := range r.job.Roles {
		role := &r.job.Roles[i]
		for _, image := range r.job.Images {
			if image.Name == role.Image {
				role.Image, role.Auth = image.URI, image.Auth != nil
				break
			}
		}
	}
}
