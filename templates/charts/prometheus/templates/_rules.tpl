{{/*
prometheus.alerts: the rule files of paictl that are on, as a map of file name to text: those of
files/rules without the groups and alerts that are off. The rule about idle jobs has its default limits
in the file; alerts.idleJobs replaces them.
*/}}
{{- define "prometheus.alerts" -}}
{{- $disabled := .Values.alerts.disabled }}
{{- /* It fires if no target is up, so it would always fire if no target is configured. */}}
{{- if not .Values.scrape.apiserver }}{{ $disabled = append $disabled "ApiServerDown" }}{{ end }}
{{- range $path, $_ := .Files.Glob "files/rules/*.yaml" }}
{{- $group := base $path | trimSuffix ".yaml" }}
{{- if index $.Values.alerts.groups $group }}
{{- $rules := list }}
{{- range (index ($.Files.Get $path | fromYaml).groups 0).rules }}
{{- if not (has .alert $disabled) }}
{{- if eq .alert "JobGpusIdle" }}
{{- $idle := $.Values.alerts.idleJobs }}
{{- $_ := set . "expr" (.expr | replace "2h" $idle.within | replace ") < 5" (printf ") < %v" $idle.percent)) }}
{{- $_ := set .annotations "description" (.annotations.description | replace "2h" $idle.within | replace "5 %" (printf "%v %%" $idle.percent)) }}
{{- end }}
{{- $rules = append $rules . }}
{{- end }}
{{- end }}
{{ printf "%s.yaml" $group }}: |
{{- dict "groups" (list (dict "name" $group "rules" $rules)) | toYaml | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{/* prometheus.customRules: rules of the configuration, in the same form. */}}
{{- define "prometheus.customRules" -}}
{{- range $name, $file := .Values.customRules }}
{{ printf "custom-%s.yaml" $name }}: |
{{- toYaml $file | nindent 2 }}
{{- end }}
{{- end -}}
