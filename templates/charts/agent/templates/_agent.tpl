{{/* agent.machines: which machines pretend to have which GPUs. */}}
{{- define "agent.machines" -}}
{{- (.Values.global | default dict).simulatedGPUs | default dict | toJson -}}
{{- end -}}
