{{/* agent.machines: the machines with their real or simulated GPUs. */}}
{{- define "agent.machines" -}}
{{- (.Values.global | default dict).gpus | default dict | toJson -}}
{{- end -}}

{{/* agent.real: "true" if any machine has real GPUs. */}}
{{- define "agent.real" -}}
{{- range (.Values.global | default dict).gpus | default dict }}{{ if not .simulated }}true{{ end }}{{ end -}}
{{- end -}}
