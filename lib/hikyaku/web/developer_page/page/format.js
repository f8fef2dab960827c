// Numbers as people read them.

const plain = new Intl.NumberFormat("en", {maximumFractionDigits: 1});
const compact = new Intl.NumberFormat("en", {notation: "compact", maximumFractionDigits: 1});

export const number = (value) => (Math.abs(value) < 100_000 ? plain.format(value) : compact.format(value));

export function bytes(value) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let step = 0;
  while (value >= 1000 && step < units.length - 1) {
    value /= 1000;
    step += 1;
  }
  return `${value < 10 && step > 0 ? value.toFixed(1) : Math.round(value)} ${units[step]}`;
}

export function duration(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const [days, hours, minutes] = [Math.floor(whole / 86400), Math.floor(whole / 3600) % 24, Math.floor(whole / 60) % 60];
  if (days) return `${days} d ${hours} h`;
  if (hours) return `${hours} h ${minutes} min`;
  if (minutes) return `${minutes} min ${whole % 60} s`;
  return `${whole} s`;
}

export const milliseconds = (value) => `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;

export const clock = (date) =>
  date.toLocaleTimeString("en-GB", {hour12: false}) + "." + String(date.getMilliseconds()).padStart(3, "0");

export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;
