package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/secret"
)

// SchemaNames returns the names of the files that have a JSON schema: the quick-start file and the four files.
func SchemaNames() []string { return append([]string{QuickStartSchema}, Files()...) }

// SchemaFile returns the file name of a published schema.
func SchemaFile(name string) string { return strings.TrimSuffix(name, ".yaml") + ".schema.json" }

// Schema returns the JSON schema (draft 2020-12) of the file name, which must be one of SchemaNames. Editors use the schema. sections maps services
// to the schemas of their sections. A section without a schema may have any content. Validate checks rules that a schema can't express.
func Schema(name string, sections map[string][]byte) ([]byte, error) {
	types := map[string]any{
		LayoutFile: layout.Layout{}, KubernetesFile: Kubernetes{}, RolesFile: Roles{}, ServicesFile: Services{}, QuickStartSchema: QuickStart{},
	}
	v, ok := types[name]
	if !ok {
		return nil, fmt.Errorf("there is no schema of %q; there are: %s", name, strings.Join(SchemaNames(), ", "))
	}
	r := jsonschema.Reflector{
		FieldNameTag: "yaml", RequiredFromJSONSchemaTags: true, DoNotReference: true, Anonymous: true, Mapper: schemaOf,
	}
	s := r.Reflect(v)
	s.Title = name
	describe(s, "", fieldDocs(name))
	constrain(s, "", schemaRules(name))
	if err := addSections(s, name, sections); err != nil {
		return nil, err
	}
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("make the schema of %s: %w", name, err)
	}
	return append(b, '\n'), nil
}

// addSections adds the schemas of services' sections to the schema of a file with such sections.
func addSections(s *jsonschema.Schema, name string, sections map[string][]byte) error {
	switch name {
	case ServicesFile:
	case QuickStartSchema:
		s, _ = s.Properties.Get("services")
		s.Properties = jsonschema.NewProperties()
		s.AdditionalProperties = &jsonschema.Schema{Type: "object"}
	default:
		return nil
	}
	for _, service := range sortedKeys(sections) {
		section := map[string]json.RawMessage{}
		if err := json.Unmarshal(sections[service], &section); err != nil {
			return fmt.Errorf("read the schema of the section %s: %w", service, err)
		}
		delete(section, "$schema") // the file's description applies to its parts
		extras := make(map[string]any, len(section))
		for key, v := range section {
			extras[key] = v
		}
		s.Properties.Set(service, &jsonschema.Schema{Extras: extras})
	}
	return nil
}

// schemaOf returns the schema of a type whose YAML form differs from its Go form. It returns nil for other types.
func schemaOf(t reflect.Type) *jsonschema.Schema {
	text := func() *jsonschema.Schema { return &jsonschema.Schema{Type: "string"} }
	switch t {
	case reflect.TypeFor[secret.String]():
		return text()
	case reflect.TypeFor[TextList]():
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{text(), {Type: "array", Items: text()}}}
	case reflect.TypeFor[QuickMachine]():
		r := jsonschema.Reflector{FieldNameTag: "yaml", RequiredFromJSONSchemaTags: true, DoNotReference: true, Anonymous: true, Mapper: schemaOf}
		object := r.ReflectFromType(reflect.TypeFor[quickMachineFields]())
		object.Version = ""
		object.Required = []string{"hostip"}
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{text(), object}}
	}
	return nil
}

// describe adds the descriptions of fields to a schema. docs has the format of fieldDocs.
func describe(s *jsonschema.Schema, p string, docs map[string]string) {
	walkSchema(s, p, func(s *jsonschema.Schema, p string) {
		if text := docs[p]; text != "" {
			s.Description = text
		}
	})
}

func constrain(s *jsonschema.Schema, p string, rules map[string]func(*jsonschema.Schema)) {
	walkSchema(s, p, func(s *jsonschema.Schema, p string) {
		if rule := rules[p]; rule != nil {
			rule(s)
		}
	})
}

func walkSchema(s *jsonschema.Schema, p string, visit func(*jsonschema.Schema, string)) {
	visit(s, p)
	children := func(s *jsonschema.Schema) {
		join := func(name string) string { return strings.TrimPrefix(p+"."+name, ".") }
		for pair := s.Properties.Oldest(); pair != nil; pair = pair.Next() {
			walkSchema(pair.Value, join(pair.Key), visit)
		}
		if s.AdditionalProperties != nil && s.AdditionalProperties.Type != "" {
			walkSchema(s.AdditionalProperties, join("*"), visit)
		}
		if s.Items != nil {
			walkSchema(s.Items, p+"[]", visit)
		}
	}
	if s.Properties != nil || s.Items != nil || s.AdditionalProperties != nil {
		children(s)
	}
	for _, one := range s.OneOf {
		if one.Properties != nil {
			children(one)
		}
	}
}

func schemaRules(name string) map[string]func(*jsonschema.Schema) {
	required := func(names ...string) func(*jsonschema.Schema) {
		return func(s *jsonschema.Schema) { s.Required = names }
	}
	enum := func(values ...any) func(*jsonschema.Schema) {
		return func(s *jsonschema.Schema) { s.Enum = values }
	}
	port := func(s *jsonschema.Schema) { s.Minimum, s.Maximum = json.Number("1"), json.Number("65535") }
	rules := map[string]func(*jsonschema.Schema){"apiVersion": enum(APIVersion)}
	if kind := kinds()[name]; kind != "" {
		rules["kind"] = enum(kind)
	}
	switch name {
	case LayoutFile:
		rules[""] = required("machine-sku", "machine-list")
		rules["machine-list[]"] = required("hostname", "hostip", "machine-type", "roles")
		rules["machine-sku.*.arch"] = enum("amd64", "arm64")
		rules["machine-sku.*.disks[].kind"] = enum("ssd", "hdd", "nvme")
		rules["machine-sku.*.gpu"] = required("type", "count")
		rules["ssh.port"], rules["machine-list[].ssh.port"] = port, port
		rules["machine-sku.*.gpu.parts"] = func(s *jsonschema.Schema) {
			s.Minimum, s.Maximum = json.Number("1"), json.Number(strconv.Itoa(mostParts))
		}
		rules["machine-sku.*.gpu.mig"] = func(s *jsonschema.Schema) { s.Pattern = `^[1-9]g\.[1-9][0-9]*gb$` }
		rules["machine-list[].gpus-for-pods"] = func(s *jsonschema.Schema) { s.UniqueItems = true }
		rules["machine-list[].gpus-for-pods[]"] = func(s *jsonschema.Schema) { s.Minimum = json.Number("0") }
	case KubernetesFile:
		rules["kubernetes.network-plugin"] = func(s *jsonschema.Schema) { s.Pattern = `^(flannel|none|.+\.(yaml|yml|json))$` }
		rules["kubernetes.api-servers-port"] = port
		rules["kubernetes.metadata-address"] = enum(MetadataClosed, MetadataOpen)
		rules["kubernetes.gpu-driver.policy"] = enum(GPUDriverKeep, GPUDriverInstall, GPUDriverNone)
		rules["kubernetes.gpu-driver.module"] = enum(GPUModuleAuto, GPUModuleOpen, GPUModuleClosed)
		rules["kubernetes.gpu-driver.source"] = enum(GPUSourceDistribution, GPUSourceNVIDIA, GPUSourceBundle)
		rules["kubernetes.gpu-driver.version"] = func(s *jsonschema.Schema) { s.Pattern = driverVersion.String() }
	case RolesFile:
		rules["k8s-role.*.component-list[]"] = func(s *jsonschema.Schema) {
			for _, c := range controlPlaneComponents() {
				s.Enum = append(s.Enum, c)
			}
		}
	case ServicesFile:
		rules[""] = func(s *jsonschema.Schema) { s.AdditionalProperties = jsonschema.TrueSchema }
	case QuickStartSchema:
		rules[""] = required("machines")
		rules["gpu"] = enum(GPUAuto, GPUNone, GPUSimulate)
		rules["ssh-port"], rules["machines[].ssh-port"] = port, port
	}
	return rules
}

// HasSchema reports whether the file name has a JSON schema.
func HasSchema(name string) bool { return slices.Contains(SchemaNames(), name) }
